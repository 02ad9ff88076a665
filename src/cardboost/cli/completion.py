"""`cardboost completion`: the script that makes a shell complete verbs, options and files."""

from __future__ import annotations

from types import SimpleNamespace

from cardboost.cli.files import OK, BadInput
from cardboost.cli.options import Argument
from cardboost.cli.verb import Verb


def run(arguments: SimpleNamespace) -> int:
    from click.shell_completion import get_completion_class

    from cardboost.cli.main import COMPLETE, cardboost

    shell = get_completion_class(arguments.shell)
    assert shell is not None
    try:
        print(shell(cardboost, {}, "cardboost", COMPLETE).source())
    except RuntimeError as error:  # of a bash that is too old, or not there
        raise BadInput(str(error)) from None
    return OK


command = Verb(
    "completion",
    run,
    {"The shell": [Argument("shell", "SHELL", "bash, zsh or fish", words=("bash", "zsh", "fish"))]},
    description="Print the script that makes a shell complete verbs, options and files.",
    examples="""\
cardboost completion bash > ~/.cardboost-complete.bash
echo 'source ~/.cardboost-complete.bash' >> ~/.bashrc
cardboost completion zsh > ~/.cardboost-complete.zsh
echo 'source ~/.cardboost-complete.zsh' >> ~/.zshrc
cardboost completion fish > ~/.config/fish/completions/cardboost.fish
""",
    notes="New shells know it from then on.",
)
