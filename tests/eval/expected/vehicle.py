"""What the programs must return or print, and do: the leaderboard's vehicle."""

from tasks import task


@task("check the tire pressure", printed=True)
def tires_and_shop(t):
    healthy = "yes" if t.vehicle.check_tire_pressure()["healthy_tire_pressure"] else "no"
    return [f"lowest 35 psi, healthy: {healthy}", "456 Oakwood Avenue, Rivermist, 83214"]


@task("lock the doors and start the engine")
def start_and_check(t):
    t.vehicle.lockDoors(unlock=False, door=["driver", "passenger", "rear_left", "rear_right"])
    t.vehicle.fillFuelTank(fuelAmount=10)
    t.vehicle.pressBrakePedal(pedalPosition=1.0)
    t.vehicle.startEngine(ignitionMode="START")
    return ["locked", 25, "running"]


@task("distance between two cities and fuel")
def can_i_drive(t):
    distance = t.vehicle.estimate_distance(cityA="94016", cityB="83214")["distance"]
    return {"distance": distance, "feasible": distance <= 15 * 20}
