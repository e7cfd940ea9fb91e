from ..language_models import llm_routing as llm_routing
