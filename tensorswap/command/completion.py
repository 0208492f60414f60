"""`tensorswap completion`: scripts that complete the command, made of its own parser, so that they are never old.

A script holds the words, options and choices as they are; it asks for the names of ops when a shell first needs them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

EXAMPLES = """\
examples:
  eval "$(tensorswap completion bash)"                                  in ~/.bashrc
  eval "$(tensorswap completion zsh)"                                   in ~/.zshrc, after compinit
  tensorswap completion fish > ~/.config/fish/completions/tensorswap.fish
"""
TAKES_PROGRAM = ("explain", "playground", "bench", "profile")  # words that take the name of an op, or a file
NAMES = "tensorswap ops --names 2>/dev/null"
ONCE = f'[ -n "$_tensorswap_names" ] || _tensorswap_names="$({NAMES})"'


@dataclass(frozen=True)
class Option:
    names: tuple[str, ...]
    choices: tuple[str, ...]
    takes_value: bool
    help: str


@dataclass(frozen=True)
class Word:
    """A word of the command with what may follow it."""

    name: str
    help: str
    options: tuple[Option, ...]
    values: tuple[str, ...]  # of its positional arguments, where they are few


def describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SHELLS))


def run(chosen: argparse.Namespace) -> None:
    print(SHELLS[chosen.shell](words()), end="")


def words() -> list[Word]:
    """All words of the command, as its parser has them."""
    from .main import parser

    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}
    return [_word(name, helps[name], own) for name, own in subparsers.choices.items()]


def _word(name: str, help: str, parser: argparse.ArgumentParser) -> Word:
    options = [
        Option(tuple(a.option_strings), _texts(a), a.nargs != 0, (a.help or "").replace("%%", "%"))
        for a in parser._actions
        if a.option_strings
    ]
    values = [text for action in parser._actions if not action.option_strings for text in _texts(action)]
    return Word(name, help, tuple(options), tuple(values))


def _texts(action: argparse.Action) -> tuple[str, ...]:
    return tuple(map(str, action.choices or ()))


def bash(known: list[Word]) -> str:
    lines = ["_tensorswap() {", '    local word="${COMP_WORDS[1]}" previous="${COMP_WORDS[COMP_CWORD-1]}"']
    lines += ['    local current="${COMP_WORDS[COMP_CWORD]}" found=""', '    if [ "$COMP_CWORD" -eq 1 ]; then']
    lines += [f"        found='{' '.join(word.name for word in known)} --help --version'", "    else"]
    lines += ['        case "$word $previous" in']
    for word in known:
        for option in word.options:
            if option.choices:
                pattern = "|".join(f'"{word.name} {name}"' for name in option.names)
                lines.append(f"            {pattern}) found='{' '.join(option.choices)}';;")
    lines += ['            *) case "$word" in']
    for word in known:
        texts = " ".join([*(name for option in word.options for name in option.names), *word.values])
        once, more = (f"{ONCE}; ", " $_tensorswap_names") if word.name in TAKES_PROGRAM else ("", "")
        lines.append(f'                {word.name}) {once}found="{texts}{more}";;')
    lines += ["            esac;;", "        esac", "    fi"]
    lines += ['    COMPREPLY=($(compgen -W "$found" -- "$current"))', "}"]
    return "\n".join([*lines, "complete -o default -F _tensorswap tensorswap", ""])


def zsh(known: list[Word]) -> str:
    lines = ["#compdef tensorswap", "_tensorswap() {", "    local -a found", "    if (( CURRENT == 2 )); then"]
    lines += ["        found=(" + " ".join(_quoted(f"{w.name}:{_one_line(w.help)}") for w in known) + ")"]
    lines += [
        "        _describe command found",
        "        return",
        "    fi",
        '    case "$words[2] $words[CURRENT-1]" in',
    ]
    for word in known:
        for option in word.options:
            if option.choices:
                pattern = "|".join(_quoted(f"{word.name} {name}") for name in option.names)
                lines.append(f"        {pattern}) compadd {' '.join(option.choices)}; return;;")
    lines += ["    esac", '    case "$words[2]" in']
    for word in known:
        told = [f"{name}:{_one_line(option.help)}" for option in word.options for name in option.names]
        texts = " ".join(map(_quoted, told))
        values = f"compadd {' '.join(word.values)}; " if word.values else ""
        ops = f"{ONCE}; compadd -- ${{=_tensorswap_names}}; _files; " if word.name in TAKES_PROGRAM else ""
        lines.append(f"        {word.name}) found=({texts}); _describe option found; {values}{ops};;")
    lines += ["    esac", "}", "compdef _tensorswap tensorswap"]
    return "\n".join([*lines, ""])


def fish(known: list[Word]) -> str:
    lines = ["function __tensorswap_names"]
    lines += [f"    set -q __tensorswap_known; or set -g __tensorswap_known ({NAMES})"]
    lines += ["    string join \\n -- $__tensorswap_known", "end"]
    lines += ["complete -c tensorswap -n __fish_use_subcommand -l version -d 'show the version'"]
    for word in known:
        seen = f"'__fish_seen_subcommand_from {word.name}'"
        lines.append(f"complete -c tensorswap -f -n __fish_use_subcommand -a {word.name} -d {_quoted(word.help)}")
        for option in word.options:
            flags = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            choices = f" -xa '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
            lines.append(f"complete -c tensorswap -n {seen} {flags}{choices} -d {_quoted(option.help)}")
        if word.values:
            lines.append(f"complete -c tensorswap -f -n {seen} -a '{' '.join(word.values)}'")
        if word.name in TAKES_PROGRAM:
            lines.append(f"complete -c tensorswap -n {seen} -a '(__tensorswap_names)'")
    return "\n".join([*lines, ""])


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace(":", "\\:")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
