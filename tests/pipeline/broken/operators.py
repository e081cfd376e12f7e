"""An operator for the job files beside it."""

import slidewise as sw

NUMBER = 5
trend = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0.0, name="trend")
