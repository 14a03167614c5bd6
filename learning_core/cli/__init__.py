"""The command: `replica-learning` in a checkout, `manage.py learning` in the Hub. One argparse program, no framework.

It is handed its plug-ins (`Host`) and writes to the streams that it is handed. It cannot authenticate people, so it
records every principal as asserted.

`arguments` says what may be typed, `commands` what each does, `rendering` how a person reads the result.
"""

from learning_core.cli.commands import Host, Workspace, main

__all__ = ["Host", "Workspace", "main"]
