"""Suggestions for unknown names."""

from __future__ import annotations

import dataclasses

from langevinrl.errors import ALIASES, alias_hint, field, in_flags, unknown
from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig

RUN = {f.name for f in dataclasses.fields(RunConfig)}
OWN = {name: {f.name for f in dataclasses.fields(METHODS[name].load())} for name in METHODS}


def test_every_alias_leads_to_an_existing_field() -> None:
    known = RUN.union(*OWN.values())
    for word, alias in ALIASES.items():
        assert set(alias.fields) <= known, word
        assert alias.fields or alias.note, word
        assert word == word.lower()
        assert word not in RUN, word


def test_similar_names_are_suggested() -> None:
    known = ["nclql", "batch_size", "capacity"]
    assert "did you mean nclql?" in unknown("agent", "NC-LQL", known)
    assert "did you mean batch_size?" in unknown("field", "batchSize", known)
    assert "did you mean batch_size?" in unknown("field", "batch_sise", known)
    assert "; here it is capacity." in unknown("field", "buffer_size", known)
    assert unknown("fruit", "qqq", ["pear"]) == "unknown fruit 'qqq'. Known: pear"


def test_fields_that_the_agent_lacks_are_not_suggested() -> None:
    assert alias_hint("w", OWN["sac"]) == ""
    assert "initial_alpha" in alias_hint("ent_coef", OWN["sac"])
    assert "initial_alpha" not in alias_hint("ent_coef", OWN["nclql"]).split(":")[0]


def test_fields_are_named_as_keywords_or_flags() -> None:
    assert (field("batch_size"), field("batch_size", 8)) == ("batch_size", "batch_size=8")
    with in_flags():
        assert (field("batch_size"), field("batch_size", 8)) == ("--batch-size", "--batch-size 8")
        assert alias_hint("buffer-size", ["capacity"]) == "; here it is --capacity."
    assert field("batch_size") == "batch_size"
