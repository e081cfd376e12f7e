"""How a command ends: its exit code, and one readable message on standard error.

`SLIDEWISE_TRACEBACK=1` shows where an error came from, for whoever wants to report it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator

from slidewise.algebra.typed import InterpretedWarning
from slidewise.errors import JobError, SlidewiseError

OK, FAILED, WRONG = 0, 1, 2
"""Done; a run that failed or was interrupted; wrong usage or a wrong job file."""
_CAUGHT = 130
"""What Typer makes of Ctrl-C, in some of its generations; no command of ours gives it."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    from slidewise.cli.app import app

    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:  # without a command there is nothing to do but to say what there is
        with contextlib.redirect_stdout(sys.stderr):
            app(args=["--help"], prog_name="slidewise", standalone_mode=False)
        return WRONG
    try:
        with _warnings_in_a_line():
            result = app(args=given, prog_name="slidewise", standalone_mode=False)
        if sys.stdout is not None:  # closed by whoever called
            sys.stdout.flush()
        if result == _CAUGHT:
            return told("interrupted", FAILED)
        return result if isinstance(result, int) else OK
    except BrokenPipeError:
        return _left()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # Typer has seen it first
            return _left()
        raise
    except KeyboardInterrupt:
        return told("interrupted", FAILED)
    except JobError as error:
        return told(str(error), WRONG)
    except SlidewiseError as error:
        return told(str(error), FAILED)
    except Exception as error:
        return _unforeseen(error)


def _left() -> int:
    """Whoever read our output has seen enough. Python would complain once more when it closes the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


@contextlib.contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """A user's operator that runs interpreted is told like everything else, and not with a line of our source."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message, category, *where, **more):
            if issubclass(category, InterpretedWarning):
                told(" ".join(str(message).split()), OK)
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        yield


def told(message: str, code: int) -> int:
    """Say it on standard error, and give back the exit code."""
    print(f"slidewise: {message}", file=sys.stderr)
    if os.environ.get("SLIDEWISE_TRACEBACK") and sys.exc_info()[0] is not None:
        print(_without_secrets(traceback.format_exc()), file=sys.stderr)
    return code


def _without_secrets(trace: str) -> str:
    error = sys.exc_info()[1]
    while error is not None:
        trace = getattr(error, "hide", str)(trace)
        error = error.__cause__
    return trace


def _unforeseen(error: Exception) -> int:
    # The parser's own errors have another class in each generation of Typer; all know their exit code and message.
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):
        return told(_with_hint(error), error.exit_code)
    if type(error).__name__ == "Abort":
        return told("interrupted", FAILED)
    if hasattr(error, "exit_code"):
        return int(error.exit_code)
    return told(f"{_first_line(error)}\n(SLIDEWISE_TRACEBACK=1 shows where this came from)", FAILED)


def _with_hint(error) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message}\nTry: {context.command_path} --help"


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
