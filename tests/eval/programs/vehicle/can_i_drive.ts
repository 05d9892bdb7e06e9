const [a, b] = await Promise.all(
  ["San Francisco", "Rivermist"].map((city) => vehicle.getZipcodeBasedOnCity({ city })),
);
const { distance } = await vehicle.estimateDistance({ cityA: a.zipcode, cityB: b.zipcode });
const { canDrive } = await vehicle.estimateDriveFeasibilityByMileage({ distance });
return { distance, feasible: canDrive };
