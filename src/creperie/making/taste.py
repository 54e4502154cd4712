"""Rules against foils that degrade people. Such foils are not made. The rules are short lists of words in taste.json,
each with its reason.
"""

from __future__ import annotations

from functools import cache

from creperie.lang import age_of, gender_of, kind_of, lemma, words
from creperie.making.data import read_data


@cache
def _lists() -> dict[str, tuple[str, frozenset[str]]]:
    return {name: (row["reason"], frozenset(row["words"])) for name, row in read_data("taste").items()}


def distasteful(caption: str, foil: str, change: str) -> str:
    """Return why a foil is in bad taste; empty if it is not. `change` is its edit in words.

    >>> distasteful("A woman in a bikini smiles.", "A girl in a bikini smiles.", "woman → girl")
    'in bad taste: it changes who is undressed'
    >>> distasteful("A woman smiles.", "A girl smiles.", "woman → girl")
    ''
    """
    changed = [lemma(w, "NNS") for w in words(change)]
    before, after = (f" {' '.join([*words(t), *(lemma(w, 'NNS') for w in words(t))])} " for t in (caption, foil))
    people = [w for w in changed if kind_of(w) == "person"]
    ages = len({age_of(w) for w in people}) > 1
    sexes = ages or len({gender_of(w) for w in people}) > 1
    for name, (reason, listed) in _lists().items():
        told = {phrase for phrase in listed if f" {phrase} " in before + after}
        traded = "↔" in change and bool(told & set(words(change)))  # who wears the dress
        bad = {
            "undressed": bool(people) or traded,
            "gendered": sexes or traded,
            "atrocity": bool(people),
            "grown": ages,
        }
        if (bad[name] and told) or any(f" {phrase} " not in before for phrase in told):
            return f"in bad taste: {reason}"
    return ""
