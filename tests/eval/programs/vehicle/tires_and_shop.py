from mcp_tools.vehicle import check_tire_pressure, find_nearest_tire_shop

tires = check_tire_pressure()
pressures = [tires[f"{place}TirePressure"] for place in ("frontLeft", "frontRight", "rearLeft", "rearRight")]
shop = find_nearest_tire_shop()["shopLocation"]
print(f"lowest {min(pressures):.0f} psi, healthy: {'yes' if tires['healthy_tire_pressure'] else 'no'}")
print(shop)
