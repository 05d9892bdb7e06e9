from mcp_tools.banking import get_iban, get_user_info

me = get_user_info()
print(f"Hello {me['first_name']} {me['last_name']} from {me['city']}!")
print("Your IBAN ends with", get_iban()[-4:])
