"""Files that were written by every version so far: they load, predict as they did, and can be saved again.

A certificate of the present version holds. An older one holds too, or its refusal says "prove it again".
"""

from __future__ import annotations

import copy
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cardboost import load_model
from cardboost.certificate import writer
from cardboost.certificate.certificate import Certificate
from cardboost.certificate.linear import LinearCertificate
from cardboost.cli.main import main
from cardboost.model import files as model_files
from cardboost.pareto import file as front_file
from cardboost.pareto.front import ParetoFront

FIXTURES = Path(__file__).parent / "fixtures"
sys.path.insert(0, str(FIXTURES))
from make import PREDICTED, TABLES, frame, write_csv  # noqa: E402

EXPECTED = {
    (folder.name, name): expected
    for folder in sorted(FIXTURES.glob("model*"))
    for name, expected in json.loads((folder / "expected.json").read_text()).items()
}
AGAIN = "prove it again"
LINEAR = 1  # version of the certificates of linear models


def files(holds: str, key: str = "holds") -> Any:
    """Parametrized over files that hold this."""
    chosen = [place for place, said in EXPECTED.items() if said["holds"] == holds and key in said]
    return pytest.mark.parametrize("place", chosen, ids=["/".join(place) for place in chosen])


def path_of(place: tuple[str, str]) -> Path:
    return FIXTURES / place[0] / f"{place[1]}.json"


@cache
def document(place: tuple[str, str]) -> Any:
    return json.loads(path_of(place).read_text())


def proofs_in(place: tuple[str, str]) -> list[dict[str, Any]]:
    """Every certificate in a file."""
    held = document(place)
    if EXPECTED[place]["holds"] == "certificate":
        return [held]
    found = [own["certificate"] for own in held.get("sizes", [held])]
    return [one for own in found for one in (own if isinstance(own, list) else [own]) if one is not None]


def check_faults(faults: list[str], proof: dict[str, Any]) -> None:
    """None; or, of an old certificate, one that says what to do about it."""
    current = LINEAR if "linear" in proof["format"] else writer.VERSION
    assert not faults or (proof["version"] < current and any(AGAIN in fault for fault in faults)), faults


def check_proofs(proofs: Any, said: dict[str, Any], classes: Any) -> None:
    """Certificates of a model against its table: one, or one for every class."""
    X, y = frame(said["features"]), np.array(TABLES["targets"][said["target"]])
    weight = np.array(TABLES["weight"]) if said.get("weighted") else None
    proofs = [] if proofs is None else proofs if isinstance(proofs, list) else [proofs]
    assert len(proofs) == len(said["verified"])
    for k, (proof, status) in enumerate(zip(proofs, said["status"], strict=True)):
        if "linear" in proof["format"]:
            certificate = LinearCertificate.from_dict(proof)
            assert certificate.status == status
            check_faults(certificate.faults(X, y, weight), proof)
        else:
            told = y if classes is None else y == classes[k if len(proofs) > 1 else 1]
            check_claims(proof, status, X, told, weight)


def check_claims(proof: dict[str, Any], status: str, *data: Any) -> None:
    certificate = Certificate(proof)
    assert certificate.status == status or proof["version"] < writer.VERSION
    faults = certificate.faults(*data)
    check_faults(faults, proof)
    if not faults:
        assert certificate.lines()
        assert certificate.lower_bound <= certificate.objective <= certificate.null_objective
    damaged = copy.deepcopy(proof)
    damaged["solution"]["objective"] *= 0.9
    damaged["digest"] = writer.checker.content_digest(damaged)
    assert Certificate(damaged).faults(*data)


def check_predictions(model: Any, said: dict[str, Any]) -> None:
    X = frame(said["features"])[:PREDICTED]
    regressor = said["labels"] is None
    scores = model.predict(X) if regressor else model.decision_function(X)
    np.testing.assert_allclose(scores, said["scores"], rtol=1e-10, atol=1e-10)
    if not regressor:
        assert model.predict(X).tolist() == said["labels"]


# ------------------------------------------------------------------------------------ what there is


def test_every_version_is_there() -> None:
    """Who raises a version adds a folder with tests/fixtures/make.py."""
    found: dict[str, set[int]] = {}
    for place, said in EXPECTED.items():
        for own in [document(place)] * (said["holds"] != "certificate") + proofs_in(place):
            found.setdefault(own["format"], set()).add(own["version"])
    assert found == {
        model_files.FORMAT: set(range(1, model_files.VERSION + 1)),
        writer.FORMAT: set(range(1, writer.CONSTRAINED + 1)),
        front_file.FORMAT: set(range(1, front_file.VERSION + 1)),
        "cardboost-linear-certificate": set(range(1, LINEAR + 1)),
    }


def test_they_hold_what_their_versions_can_say() -> None:
    """Otherwise they would show little."""
    proofs = [own for place in EXPECTED for own in proofs_in(place) if own["format"] == writer.FORMAT]
    terms = [
        term
        for place, said in EXPECTED.items()
        if said["holds"] == "model"
        for part in document(place)["ensemble"].get("ensembles", [document(place)["ensemble"]])
        for term in part.get("terms", [])
    ]
    assert {key for term in terms for key in ("cut", "category", "one_of") if key in term} == {
        "cut",
        "category",
        "one_of",
    }
    for version in range(1, writer.VERSION + 1):
        own = [proof for proof in proofs if proof["version"] == version]
        leaves = [leaf for proof in own for bound in proof["bounds"] for leaf in bound["leaves"]]
        assert any(proof["dictionary"] for proof in own)
        assert any(proof["kind"] == "matrix" for proof in own)
        assert any(proof["categories"] for proof in own if "categories" in proof)
        assert any(proof["problem"].get("target") for proof in own)
        assert any(leaf["forced_in"] for leaf in leaves)
        assert any(isinstance(leaf["weights"], str) for leaf in leaves)
        assert any(leaf.get("curve") for leaf in leaves) == (version >= 3)
        assert any(proof.get("points") for proof in own) == (version >= 4)
        assert any(proof["problem"].get("radius") for proof in own) == (version >= 5)


# ------------------------------------------------------------------------------------ models


@files("model")
def test_models_predict_as_they_did(place: tuple[str, str]) -> None:
    check_predictions(load_model(path_of(place)), EXPECTED[place])


@files("model")
def test_models_can_be_saved_again(place: tuple[str, str], tmp_path: Path) -> None:
    model = load_model(path_of(place))
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    model_files.save(once, model.ensemble, model.certificate, model.training)
    again = load_model(once)
    check_predictions(again, EXPECTED[place])
    held = document(place)
    assert (again.certificate, again.training) == (held["certificate"], held["training"])
    model_files.save(twice, again.ensemble, again.certificate, again.training)
    assert once.read_bytes() == twice.read_bytes()


@files("model")
def test_certificates_of_models(place: tuple[str, str]) -> None:
    model = load_model(path_of(place))
    check_proofs(model.certificate, EXPECTED[place], model.classes)


@files("model", "totals")
def test_cards_in_points_have_the_totals_they_had(place: tuple[str, str]) -> None:
    model, said = load_model(path_of(place)), EXPECTED[place]
    card = model.scorecard(Certificate(model.certificate))
    assert card.total(frame(said["features"])[:PREDICTED]).tolist() == said["totals"]
    assert card.to_text()


@files("model", "command_line")
def test_the_command_line_takes_its_files(place: tuple[str, str], tmp_path: Path, capsys: Any) -> None:
    model, table, said = str(path_of(place)), tmp_path / "table.csv", EXPECTED[place]
    write_csv(table)
    assert main(["predict", model, str(table)]) == 0
    lines = capsys.readouterr().out.splitlines()
    scores = [float(line.split(",")[0]) for line in lines[1 : PREDICTED + 1]]
    np.testing.assert_allclose(scores, said["scores"], rtol=1e-6, atol=1e-6)
    assert main(["export", model, "--format", "python", "--out", str(tmp_path / "card.py")]) == 0


@files("model", "command_line")
def test_certify_on_the_command_line(place: tuple[str, str], tmp_path: Path, capsys: Any) -> None:
    table = tmp_path / "table.csv"
    write_csv(table)
    ended = main(["certify", str(path_of(place)), str(table)])
    said = " ".join(capsys.readouterr().out.split())
    current = proofs_in(place)[0]["version"] == writer.VERSION
    assert ended == 0 or (ended == 1 and AGAIN in said and not current), said


# ------------------------------------------------------------------------------------ certificates and fronts


@files("certificate")
def test_certificates_of_matrices(place: tuple[str, str]) -> None:
    said = EXPECTED[place]
    weight = None if said["weight"] is None else np.array(said["weight"])
    check_claims(document(place), said["status"][0], np.array(said["matrix"]), None, weight)


@files("front")
def test_fronts(place: tuple[str, str], tmp_path: Path) -> None:
    front, said = ParetoFront.load(path_of(place)), EXPECTED[place]
    once, twice = tmp_path / "once.json", tmp_path / "twice.json"
    front.save(once)
    again = ParetoFront.load(once)
    again.save(twice)
    assert once.read_bytes() == twice.read_bytes()
    for own in (front, again):
        for point, expected in zip(own, said["sizes"], strict=True):
            assert (point.size, list(point.scores)) == (expected["size"], expected["cross_validated"])
            check_predictions(point.model, said | expected)
    assert str(front)
    assert front._repr_html_()
    for point, expected in zip(front, said["sizes"], strict=True):
        assert point.model.card()
        proofs = [certificate.to_dict() for certificate in point.certificates]
        check_proofs(proofs, said | expected, getattr(point.model, "classes_", None))
