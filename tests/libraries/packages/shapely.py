# package: shapely
# value: [4.0, true]
from shapely.geometry import Point, box
[box(0, 0, 2, 2).area, box(0, 0, 2, 2).contains(Point(1, 1))]
