"""The command line: `slidewise run | demo | explain | bench | algorithms | doctor`.

    app.py        the commands and their options
    jobs.py       run and explain; demonstration.py: demo
    outcome.py    exit codes and the one message that goes with them
    terminal.py   where people read (a terminal) and where machines do (--json); progress
    doctor.py     what `slidewise doctor` looks at

Exit code 0, 1 for a run that failed or was interrupted, 2 for wrong usage or a wrong job file.
"""

from slidewise.cli.outcome import main
