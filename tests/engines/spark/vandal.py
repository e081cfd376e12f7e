"""A stateful operator that damages what it finds stored: for the tests of damaged state."""

from __future__ import annotations

from slidewise.engines.spark.processor import BucketProcessor


class Vandal(BucketProcessor):
    """Flips one bit of the youngest stored entry of each bucket that has rows, and commits."""

    def handleInputRows(self, key, rows, timerValues):
        for _ in rows:
            pass
        log, _ = self._open(int(key[0]))
        if log.exists:
            number = log.head.segments[-1].number
            data = bytearray(self.store.read(number))
            data[-20] ^= 16
            self.store.write(number, bytes(data))
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)
        return iter([])
