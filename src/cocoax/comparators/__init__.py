"""The best fixed decision in hindsight, with a certificate."""
