"""A live leaderboard: the best three scores of the last ten minutes in each game, asked at any moment, with scores in any order.

    python examples/leaderboard.py
"""

from datetime import UTC, datetime, timedelta

import slidewise as sw

START = datetime(2026, 1, 1, 20, 0, tzinfo=UTC)
PLAYED = [(0, "chess", 70), (2, "chess", 95), (1, "go", 40), (5, "chess", 60), (4, "chess", 88)]
"""Minute, game, score; the last one arrives late."""


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def main() -> None:
    aggregates = {"best": sw.top_k("score", k=3), "plays": sw.count()}
    board = sw.Live(windows={"now": "10m"}, aggs=aggregates, by="game", time="at")
    for minute, game, score in PLAYED:
        board.push({"game": game, "at": at(minute), "score": score})
    for game in ("chess", "go"):
        print(f"{game}: {board.query(game)}")
    assert board.query("chess")["best_now"] == [95, 88, 70]
    assert board.query("chess")["plays_now"] == 4
    print(f"chess, a while later: {board.query('chess', at=at(13))}")
    assert board.query("chess", at=at(13))["best_now"] == [88, 60]


if __name__ == "__main__":
    main()
