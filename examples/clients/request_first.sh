#!/bin/sh
# Decide for the request in request.json, then observe the rest of its round, round.json: for the campaign $2 of the
# service at $1, with the ticket $3; the token is in $TOKEN.
ask() { curl -sf --retry 5 --max-time 10 "$1" -H 'Content-Type: application/json' -H "Authorization: Bearer $TOKEN" -d "$2"; }
of="\"name\": \"$2\", \"ticket\": \"$3\""
ask "$1/decide" "{$of, \"requests\": $(cat request.json)}" >&2
ask "$1/observe" "{$of, \"rounds\": $(cat round.json)}"
