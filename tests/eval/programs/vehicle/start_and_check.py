from mcp_tools.vehicle import fillFuelTank, lockDoors, pressBrakePedal, startEngine

doors = lockDoors(unlock=False, door=["driver", "passenger", "rear_left", "rear_right"])
fuel = fillFuelTank(fuelAmount=10)
pressBrakePedal(pedalPosition=1.0)
engine = startEngine(ignitionMode="START")
[doors["lockStatus"], fuel["fuelLevel"], engine["engineState"]]
