"""Who may ask what: bearer tokens, each for a role."""

import functools
import hashlib
import hmac
import ipaddress
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import SessionError
from .errors import Refused

ROLES = "play", "read", "admin"
PUBLIC = {"/", "/health", "/ready"}  # they show no data
_ADMIN = {"/begin", "/change", "/end"}
_SHORTEST = 16  # characters
_HINT = "give the header Authorization: Bearer TOKEN"


def role_of(method: str, path: str) -> str | None:
    """The role that a request needs; None if everybody may ask."""
    if path in PUBLIC:
        return None
    return "read" if method in ("GET", "HEAD") else "admin" if path in _ADMIN else "play"


class Tokens:
    """Digests of tokens with their roles. A token of the role admin may do everything."""

    def __init__(self, tokens: Iterable[tuple[str, str]] = ()):
        self._digests = [(role, _digest(_checked(role, token).encode())) for role, token in tokens]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, role: str | None, header: bytes | None):
        """Raise unless this header allows the role.

        It takes the same time for every wrong token.
        """
        if role is None or not self._digests:
            return
        scheme, _, token = (header or b"").partition(b" ")
        digest = _digest(token.strip())
        roles = {one for one, known in self._digests if hmac.compare_digest(digest, known)}
        if scheme.lower() != b"bearer" or not roles:
            raise Refused(401, f"the token is missing or unknown; {_HINT}")
        if not roles & {role, "admin"}:
            raise Refused(403, f"this token is for the role {', '.join(sorted(roles))}; {role} is needed")


def tokens_from(file: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """Those in a file, a role and a token a line, and in COCOAX_TOKEN_PLAY, COCOAX_TOKEN_READ, COCOAX_TOKEN_ADMIN."""
    names = {f"COCOAX_TOKEN_{role.upper()}": role for role in ROLES}
    found = [(names[name], environment[name]) for name in names if environment.get(name)]
    if file is not None:
        try:
            lines = file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise SessionError(f"the tokens in {file} cannot be read: {reason}; give another file") from None
        rows = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not rows or any(len(row) != 2 for row in rows):
            raise SessionError(f"{file} must have lines with a role and a token, for example: read 9hQ2...")
        found += [(role, token) for role, token in rows]
    return Tokens(found)


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: bytes | None):
    """A service without tokens answers to names of this machine alone: web pages could use others to reach it."""
    name = (host or b"").decode("latin-1").lower()
    name = name[: name.rfind("]") + 1] if name.startswith("[") else name.partition(":")[0]
    if not is_loopback(name):
        raise Refused(403, "without tokens this service is for localhost alone; start it with --tokens FILE")


def _checked(role: str, token: str) -> str:
    if role not in ROLES:
        raise SessionError(f"there is no role {role!r}; roles are {', '.join(ROLES)}")
    if len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise SessionError(f"a token of the role {role} is not {_SHORTEST} or more printable ASCII characters")
    return token


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
