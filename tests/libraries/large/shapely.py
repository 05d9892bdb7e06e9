# package: shapely
# value: [1000000, 21000000, true]
import numpy as np
import shapely
numbers = np.arange(1_000_000, dtype="f8")
points = shapely.points(numbers, numbers)
[len(points), len(b"".join(shapely.to_wkb(points))), bool(shapely.area(shapely.buffer(points[:20_000], 1)).sum() > 60_000)]
