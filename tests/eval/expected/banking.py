"""What the programs must return or print, and do: the suite banking."""

from tasks import task


@task("scheduled transactions of my bank account")
def recurring_total(t):
    return sum(one.amount for one in t.environment("banking").bank_account.scheduled_transactions if one.recurring)


@task("my recent transactions")
def spent_by_recipient(t):
    spent = {}
    for one in t.environment("banking").bank_account.transactions:
        if one.sender == "me":
            spent[one.recipient] = spent.get(one.recipient, 0) + one.amount
    return [list(pair) for pair in sorted(spent.items(), key=lambda pair: -pair[1])[:2]]


@task("change a scheduled payment")
def raise_rent(t):
    return t.banking.update_scheduled_transaction(id=7, amount=1200)["message"]


@task("list transactions", printed=True)
def largest_expense(t):
    biggest = max(t.environment("banking").bank_account.transactions, key=lambda one: one.amount)
    return [f"{biggest.date} {biggest.subject}"]


@task("send money back")
def send_back(t):
    received = [one for one in t.environment("banking").bank_account.transactions if one.recipient == "me"]
    back = [{"recipient": one.sender, "amount": one.amount, "subject": f"Refund: {one.subject}"} for one in received]
    return [t.banking.send_money(**one, date="2022-04-01")["message"] for one in back]


@task("balance of my account after planned payments")
def balance_left(t):
    account = t.environment("banking").bank_account
    return account.balance - sum(one.amount for one in account.scheduled_transactions)


@task("read a file and update my address")
def move_house(t):
    return t.banking.update_user_info(street="Dalton Street 123", city="New York")


@task("most recent transactions")
def transactions_per_month(t):
    months = [one.date[:7] for one in t.environment("banking").bank_account.transactions]
    return {month: months.count(month) for month in months}


@task("user information of the bank", printed=True)
def greeting(t):
    user, iban = t.environment("banking").user_account, t.environment("banking").bank_account.iban
    hello = f"Hello {user.first_name} {user.last_name} from {user.city}!"
    return [hello, f"Your IBAN ends with {iban[-4:]}"]


@task("scheduled payments")
def scheduled_as_json(t):
    return {one.subject: one.date for one in t.environment("banking").bank_account.scheduled_transactions}
