const tires = await vehicle.check_tire_pressure();
const places = ["frontLeft", "frontRight", "rearLeft", "rearRight"];
const lowest = Math.min(...places.map((place) => tires[`${place}TirePressure`]));
const { shopLocation } = await vehicle.find_nearest_tire_shop();
console.log(`lowest ${lowest.toFixed(0)} psi, healthy: ${tires.healthy_tire_pressure ? "yes" : "no"}`);
console.log(shopLocation);
