"""What a shell needs to complete commands and options: a function of bash."""

from collections.abc import Iterator, Mapping, Sequence

SCRIPT = """\
_movi() {{
    local before=" ${{COMP_WORDS[*]:1:$((COMP_CWORD - 1))}} " words=""
    case "$before" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _movi movi
"""


def script(options: Mapping[str, Sequence[str]]) -> str:
    """A function with the words that may follow those before the cursor.

    Args:
      options: by command, of one word or two: what may stand after it.
    """
    cases = [f'        "{before}") words="{words}" ;;' for before, words in _cases(options)]
    return SCRIPT.format(cases="\n".join(cases))


def _cases(options: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Patterns of what stands before, as bash matches them, and what may come then."""
    firsts = dict.fromkeys(words.split()[0] for words in options)
    yield "  ", " ".join([*firsts, "--help", "--version"])
    for first in firsts:
        seconds = [words.split()[1] for words in options if words.startswith(f"{first} ")]
        if seconds:
            yield f" {first} ", " ".join(seconds)
    for words, own in options.items():
        yield f' {words} "*"', " ".join([*own, "--help"])
