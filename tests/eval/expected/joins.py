"""What the programs must return or print, and do: tasks that use several servers."""

import json

from tasks import task


@task("calendar events of today, send a message to a slack channel")
def agenda_to_slack(t):
    lines = ["10:00 Team Sync", "12:30 Lunch with Sarah", "15:00 Introductory meeting"]
    t.slack.send_channel_message(channel="general", body="\n".join(lines))
    return 3


@task("stock price, post a tweet")
def tweet_a_price(t):
    return t.twitter.post_tweet(content="NVDA is at 220.34", tags=["#NVDA"])["content"]


@task("read channel messages, create a file in the drive")
def archive_channel(t):
    messages = [message.model_dump() for message in t.environment("slack").slack.channel_inbox["general"]]
    text = json.dumps(messages, indent=2)
    t.workspace.create_file(filename="general.json", content=text)
    return ["general.json", len(text)]


@task("read a file of the bank, create a file in the drive", printed=True)
def save_the_bill(t):
    bill = t.environment("banking").filesystem.files["bill-december-2023.txt"]
    t.workspace.create_file(filename="bill-december-2023.txt", content=bill)
    return [f"bill-december-2023.txt {len(bill.splitlines())}"]


@task("calendar events of a day, create tickets")
def tickets_for_meetings(t):
    t.tickets.ticket_login(username="emma", password="secret")
    titles = []
    for event in t.workspace.get_day_calendar_events(day="2024-05-25"):
        if "eadline" in event.title:
            t.tickets.create_ticket(title=event.title, description=event.description, priority=5)
            titles.append(event.title)
    return titles


@task("price of a restaurant, send money")
def pay_for_dinner(t):
    subject = "Dinner for Alice and Bob"
    t.banking.send_money(recipient="GB29NWBK60161331926819", amount=60, subject=subject, date="2024-05-16")
    return 60
