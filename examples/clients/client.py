"""Decide and observe once: client.py URL CAMPAIGN, with the token in $TOKEN and the round in round.json."""

import json
import os
import sys
import urllib.request
from pathlib import Path

url, name = sys.argv[1:]
headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['TOKEN']}"}


def ask(path, **content):
    request = urllib.request.Request(url + path, json.dumps(content).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


decided = ask("/decide", name=name)
round = json.loads(Path("round.json").read_text())
print(json.dumps(ask("/observe", name=name, rounds=round, at=decided["rounds"])))  # after a timeout: once more
