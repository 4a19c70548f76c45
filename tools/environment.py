"""Create an environment from a hashed lock; do nothing when it is fresh.

    python3 tools/environment.py [.venv requirements.lock]

Only the standard library, and only syntax that old interpreters can read, so that
a wrong Python version meets a sentence and not a traceback.
"""

import hashlib
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST, NEWEST = (3, 11), (3, 14)


def fingerprint(lock):
    """Digest of what determines the environment: the interpreter and the lock."""
    digest = hashlib.sha256(sys.version.encode())
    with open(os.path.join(ROOT, lock), "rb") as file:
        digest.update(file.read())
    return digest.hexdigest()


def check_version(version):
    """Stop with one sentence unless the interpreter is a supported one."""
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        sys.exit(
            "error: this project needs Python 3.11 to 3.14, and python3 is %d.%d;"
            " say which to use, as in: make PYTHON=python3.12 serve"
            % tuple(version[:2])
        )


def run(step, command):
    """Run one installation step; on failure, its output and one sentence."""
    print(step)
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT
    )
    if result.returncode:
        output = result.stdout.decode("utf-8", "replace")
        sys.stderr.write(output[-3000:])
        lost = (
            "NewConnectionError",
            "ConnectionError",
            "No matching distribution",
            "Temporary failure in name resolution",
            "Could not fetch URL",
        )
        network = any(word in output for word in lost)
        sys.exit(
            "error: the package index could not be reached; the first run needs a"
            " network connection"
            if network
            else "error: '%s' failed; its output is above" % step
        )


def is_fresh(stamp, wanted):
    """Tell whether an environment was made, to its end, from what is wanted."""
    if not os.path.exists(stamp):
        return False
    with open(stamp) as file:
        return file.read() == wanted


def main(name=".venv", lock="requirements.lock"):
    check_version(sys.version_info)
    stamp, wanted = os.path.join(ROOT, name, ".installed-from"), fingerprint(lock)
    if is_fresh(stamp, wanted):
        return
    import fcntl

    # One process at a time makes it; another one waits, and then finds it made.
    with open(os.path.join(ROOT, lock)) as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (IOError, OSError):
            print("environment: another make is creating %s; waiting for it" % name)
            fcntl.flock(held, fcntl.LOCK_EX)
        if not is_fresh(stamp, wanted):
            create(name, lock, stamp, wanted)


def create(name, lock, stamp, wanted):
    """Make the environment from nothing, and note at the end what it was made from."""
    venv = os.path.join(ROOT, name)
    python = os.path.join(venv, "bin", "python")
    # A half-made environment is never mended: it is made anew.
    shutil.rmtree(venv, ignore_errors=True)
    run("environment: creating %s" % name, [sys.executable, "-m", "venv", venv])
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    # The lock names all packages. Left to look for what they need, pip meets newer
    # ones of other hashes, where a package asks for another one with extras, and stops.
    run(
        "environment: installing the locked packages (about a minute)",
        install + ["--no-deps", "--require-hashes", "--requirement", lock],
    )
    run(
        "environment: installing lib",
        install + ["--no-deps", "--no-build-isolation", "--editable", "."],
    )
    run(
        "environment: checking that they are what all of them need",
        [python, "-m", "pip", "--disable-pip-version-check", "check"],
    )
    with open(stamp + ".part", "w") as file:
        file.write(wanted)
    os.replace(stamp + ".part", stamp)


if __name__ == "__main__":
    try:
        if len(sys.argv) == 3:
            main(sys.argv[1], sys.argv[2])
        else:
            main()
    except KeyboardInterrupt:
        sys.exit("error: interrupted; make creates the environment anew")
