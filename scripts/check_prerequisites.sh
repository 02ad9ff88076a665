#!/bin/sh
# Says in one sentence what is missing to build cardboost, before anything is downloaded.
# Usage: check_prerequisites.sh PYTHON
python=${1:-python3}

fail() {
    echo "cardboost: $1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    fail "Python 3.11 or later is needed and \"$python\" was not found; install it or run make PYTHON=/path/to/python3."

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
    fail "\"$python\" does not run; choose another interpreter with make PYTHON=/path/to/python3."

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Python 3.11 or later is needed and \"$python\" is $version; choose another with make PYTHON=/path/to/python3."

"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    fail "\"$python\" cannot make virtual environments; install its venv module (Debian: apt-get install python3-venv)."

"$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
    fail "the C headers of \"$python\" are missing; install them (Debian: apt-get install python3-dev)."

# CMake reads CXX first, then tries these names; CXX may carry options after the compiler's name.
compiler=${CXX:-}
if [ -z "$compiler" ]; then
    for name in c++ g++ clang++; do
        if command -v "$name" >/dev/null 2>&1; then
            compiler=$name
            break
        fi
    done
fi
[ -n "$compiler" ] && command -v "${compiler%% *}" >/dev/null 2>&1 ||
    fail "a C++ compiler is needed and none was found${CXX:+ as CXX=$CXX}; install one (Debian: apt-get install g++)."

# shellcheck disable=SC2086  # the options in CXX are meant to split
printf '#include <optional>\nint main() { std::optional<int> x; return x.has_value(); }\n' |
    $compiler -std=c++17 -x c++ -fsyntax-only - >/dev/null 2>&1 ||
    fail "the C++ compiler \"$compiler\" cannot compile C++17; install a newer one (Debian: apt-get install g++) or set CXX."
