"""Box scores: a file is read as it is or refused in a sentence; made-up games are possible games."""

import csv
import gzip

import numpy as np
import pytest

from cardboost.datasets.box_scores import COLUMNS, FILE, STATISTICS, made_up_box_scores, read_box_scores


def write(folder, data, *, drop=(), change=None):
    """A file like the real one: more columns, in another order."""
    names = ["date", "home_pts", *reversed(COLUMNS), "home_blk", "road_blk", "y"]
    kept = [name for name in names if name not in drop]
    with gzip.open(folder / FILE, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(kept)
        for k, (x, y) in enumerate(zip(data.X, data.y, strict=True)):
            row = {"date": "2020-01-01", "home_pts": 99, "home_blk": 3, "road_blk": 4, "y": int(y)}
            row |= dict(zip(COLUMNS, x.tolist(), strict=True))
            if change and change[0] == k:
                row[change[1]] = change[2]
            writer.writerow([row[name] for name in kept])


def test_the_columns_are_those_of_the_paper():
    assert len(STATISTICS) == 16
    assert len(COLUMNS) == 32
    assert not any("blk" in name or "pts" in name for name in COLUMNS)


def test_what_was_written_is_read(tmp_path):
    data = made_up_box_scores(12)
    write(tmp_path, data)
    found = read_box_scores(tmp_path, 10)
    assert np.array_equal(found.X, data.X[:10])
    assert np.array_equal(found.y, data.y[:10])
    assert not found.made_up
    assert "first 10 games" in found.source


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"drop": ["home_ast"]}, "no column 'home_ast'"),
        ({"drop": ["home_ast", "y", "road_pf"]}, "and 2 more"),
        ({"change": (1, "road_stl", "many")}, "line 3, column 'road_stl': expected a number, found 'many'"),
        ({"change": (0, "road_stl", "")}, "found ''"),
        ({"change": (0, "road_stl", "nan")}, "expected a number"),
        ({"change": (0, "y", "0")}, "expected 1 or -1, found '0'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, settings, words):
    write(tmp_path, made_up_box_scores(4), **settings)
    with pytest.raises(ValueError, match=words):
        read_box_scores(tmp_path, 4)


def test_too_few_games(tmp_path):
    write(tmp_path, made_up_box_scores(4))
    with pytest.raises(ValueError, match="4 games; 5 are needed"):
        read_box_scores(tmp_path, 5)


def test_damaged_files(tmp_path):
    write(tmp_path, made_up_box_scores(50))
    whole = (tmp_path / FILE).read_bytes()
    for content in (
        b"date,y\n",
        whole[: len(whole) // 2],
        gzip.compress(b"\xff\xfe\xff"),
        gzip.compress(b""),
    ):
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(ValueError, match=FILE):
            read_box_scores(tmp_path, 50)


def test_made_up_games_are_possible_games():
    data = made_up_box_scores(400)
    own = dict(zip(COLUMNS, data.X.T, strict=True))
    for team in ("home", "road"):
        for made, tried, share in (
            ("fgm", "fga", "fg_pct"),
            ("fg3m", "fg3a", "fg3_pct"),
            ("ftm", "fta", "ft_pct"),
        ):
            made, tried = own[f"{team}_{made}"], own[f"{team}_{tried}"]
            assert (made >= 0).all()
            assert (made <= tried).all()
            assert np.allclose(own[f"{team}_{share}"], made / tried, atol=6e-4)
        assert np.array_equal(own[f"{team}_treb"], own[f"{team}_oreb"] + own[f"{team}_dreb"])
        assert (own[f"{team}_fg3m"] <= own[f"{team}_fgm"]).all()
    assert 0.45 < np.mean(data.y > 0) < 0.7
    assert data.made_up


def test_equal_seeds_give_equal_games():
    assert np.array_equal(made_up_box_scores(50).X, made_up_box_scores(50).X)
    assert not np.array_equal(made_up_box_scores(50).X, made_up_box_scores(50, seed=1).X)
