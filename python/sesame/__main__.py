"""The command `sesame` of the package: `python -m sesame`, and the script that pip installs."""

import os
import sys


def main():
    """Becomes the command, with the arguments of this process."""
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "sesame")
    if not os.path.exists(command):
        sys.exit(f"sesame: this installation of the Python package has no command: {command} does not exist")
    os.execv(command, ["sesame", *sys.argv[1:]])


if __name__ == "__main__":
    main()
