const doors = await vehicle.lockDoors({ unlock: false, door: ["driver", "passenger", "rear_left", "rear_right"] });
const fuel = await vehicle.fillFuelTank({ fuelAmount: 10 });
await vehicle.pressBrakePedal({ pedalPosition: 1.0 });
const engine = await vehicle.startEngine({ ignitionMode: "START" });
return [doors.lockStatus, fuel.fuelLevel, engine.engineState];
