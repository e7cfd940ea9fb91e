"""One call of a session at a time: other threads wait, a call from inside another one is an error."""

import os
import sys
import threading

from ..errors import SessionError


class Guard:
    """`with guard.alone(session): ...`, in the methods of the session."""

    def __init__(self):
        self._lock = threading.RLock()

    def alone(self, session):
        """The lock; an error if this thread is inside a method already, as a signal handler or a loss can be.

        It is Python's own lock, for no interrupt comes between its locking and the block.
        """
        if self._lock._is_owned():  # pyright: ignore[reportAttributeAccessIssue]
            if _is_inside(session, sys._getframe(1)):
                raise SessionError(
                    "this session is inside another call, which a signal handler or a loss interrupts; call it after "
                    "that one, and see session.rounds for whether that one counts"
                )
            self._lock.release()  # a debugger raised an error where the block ends
        return self._lock


def _is_inside(session, method) -> bool:
    """Whether another method of the session is on the stack below this one."""
    frame, folder = method.f_back, os.path.dirname(method.f_code.co_filename)
    while frame is not None:
        if os.path.dirname(frame.f_code.co_filename) == folder and frame.f_locals.get("self") is session:
            return True
        frame = frame.f_back
    return False
