from mcp_tools.travel import get_user_information

user = get_user_information()
f"{user['First Name']} {user['Last Name']}, passport {user['Passport Number']}"
