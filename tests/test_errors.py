"""What is said of a name that is not there."""

from __future__ import annotations

import dataclasses

from langevinrl.errors import ALIASES, alias_hint, field, in_flags, unknown
from langevinrl.registry import METHODS
from langevinrl.runs.config import RunConfig

RUN = {f.name for f in dataclasses.fields(RunConfig)}
OWN = {name: {f.name for f in dataclasses.fields(METHODS[name].load())} for name in METHODS}
LATER = {"track"}  # of the logging sinks


def test_every_word_leads_to_a_field_that_there_is() -> None:
    known = RUN.union(*OWN.values()) | LATER
    for word, usual in ALIASES.items():
        assert set(usual.fields) <= known, word
        assert usual.fields or usual.note, word
        assert word == word.lower()
        assert word not in RUN, word


def test_the_nearest_name_is_found_whatever_its_marks() -> None:
    known = ["nclql", "batch_size", "capacity"]
    assert "did you mean nclql?" in unknown("agent", "NC-LQL", known)
    assert "did you mean batch_size?" in unknown("field", "batchSize", known)
    assert "did you mean batch_size?" in unknown("field", "batch_sise", known)
    assert "; here it is capacity." in unknown("field", "buffer_size", known)
    assert unknown("fruit", "qqq", ["pear"]) == "unknown fruit 'qqq'. Known: pear"


def test_a_word_whose_field_this_agent_lacks_is_not_suggested() -> None:
    assert alias_hint("w", OWN["sac"]) == ""
    assert "initial_alpha" in alias_hint("ent_coef", OWN["sac"])
    assert "initial_alpha" not in alias_hint("ent_coef", OWN["nclql"]).split(":")[0]


def test_fields_are_named_as_they_are_written() -> None:
    assert (field("batch_size"), field("batch_size", 8)) == ("batch_size", "batch_size=8")
    with in_flags():
        assert (field("batch_size"), field("batch_size", 8)) == ("--batch-size", "--batch-size 8")
        assert alias_hint("buffer-size", ["capacity"]) == "; here it is --capacity."
    assert field("batch_size") == "batch_size"
