"""Decide for a request, then observe its round: request_first.py URL CAMPAIGN TICKET, with the token in $TOKEN, the
request in request.json and what is known later in round.json."""

import json
import os
import sys
import urllib.request
from pathlib import Path

url, name, ticket = sys.argv[1:]
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['TOKEN']}"}


def ask(path, **content):
    request = urllib.request.Request(url + path, json.dumps(content).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


request, rest = (json.loads(Path(file).read_text()) for file in ("request.json", "round.json"))
decided = ask("/decide", name=name, ticket=ticket, requests=request)  # after a timeout: once more
print(json.dumps(decided["decisions"]), file=sys.stderr)  # act on it; days may go by
print(json.dumps(ask("/observe", name=name, ticket=ticket, rounds=rest)))  # after a timeout: once more
