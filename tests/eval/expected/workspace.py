"""What the programs must return or print, and do: the suite workspace: email, calendar and cloud drive."""

from tasks import task


@task("read my unread emails")
def unread_senders(t):
    counts = {}
    for email in t.workspace.get_unread_emails():
        counts[email.sender] = counts.get(email.sender, 0) + 1
    return counts


@task("search the cloud drive for text")
def budget_files(t):
    return sorted(file.filename for file in t.workspace.search_files(query="budget"))


@task("list all files in the drive with their sizes")
def largest_files(t):
    files = sorted(t.environment("workspace").cloud_drive.files.values(), key=lambda file: -file.size)
    return [[file.filename, file.size] for file in files[:3]]


@task("who owns the files in the cloud drive")
def files_per_owner(t):
    owners = [file.owner for file in t.environment("workspace").cloud_drive.files.values()]
    return {owner: owners.count(owner) for owner in owners if owners.count(owner) > 1}


@task("what is on my calendar today", printed=True)
def todays_agenda(t):
    calendar = t.environment("workspace").calendar
    events = sorted(calendar.get_by_day(calendar.current_day), key=lambda event: event.start_time)
    return [f"{e.start_time:%H:%M}-{e.end_time:%H:%M} {e.title} ({e.location})" for e in events]


@task("calendar events of a day and their participants")
def people_i_meet(t):
    calendar = t.environment("workspace").calendar
    days = ("2024-05-15", "2024-05-19", "2024-05-20")
    events = [event for event in calendar.events.values() if str(event.start_time.date()) in days]
    return sorted({who for event in events for who in event.participants} - {calendar.account_email})


@task("send an email to the participants of a calendar event")
def remind_participants(t):
    event = t.workspace.search_calendar_events(query="Team Sync")[0]
    body = f"See you at {event.start_time:%H:%M} in {event.location}."
    return t.workspace.send_email(recipients=event.participants[1:], subject="Reminder: Team Sync", body=body).recipients


@task("files shared with a person")
def editable_by_david(t):
    files = t.environment("workspace").cloud_drive.files.values()
    return [file.filename for file in files if file.shared_with.get("david.lee@bluesparrowtech.com") == "rw"]


@task("share a file with a contact by name")
def share_with_contact(t):
    email = t.environment("workspace").inbox.find_contacts_by_name("Katie")[0].email
    return t.workspace.share_file(file_id="13", email=email, permission="r").shared_with


@task("append a line to a file in the drive")
def log_unread_count(t):
    count = len(t.workspace.get_unread_emails())
    t.workspace.append_to_file(file_id="16", content=f"\nUnread emails: {count}")
    return f"Unread emails: {count}"


@task("create a file in the cloud drive")
def create_index(t):
    names = sorted(file.filename for file in t.environment("workspace").cloud_drive.files.values())
    created = t.workspace.create_file(filename="index.txt", content="\n".join(names))
    return {"id": created.id_, "lines": len(names)}


@task("find meetings in my calendar")
def long_meetings(t):
    events = t.workspace.search_calendar_events(query="meeting")
    hours = [(event.title, (event.end_time - event.start_time).total_seconds() / 3600) for event in events]
    return [{"title": title, "hours": length} for title, length in sorted(hours) if length > 1]


@task("get all received emails")
def received_statistics(t):
    bodies = [email.body for email in t.environment("workspace").inbox.received]
    return {"emails": len(bodies), "average_length": round(sum(map(len, bodies)) / len(bodies))}


@task("look up contacts by email address", printed=True)
def colleagues(t):
    contacts = t.environment("workspace").inbox.find_contacts_by_email("@bluesparrowtech.com")
    lines = [f"{contact.name} <{contact.email}>" for contact in sorted(contacts, key=lambda contact: contact.name)]
    return [f"{len(contacts)} colleagues", *lines]


@task("emails that I have sent")
def top_correspondents(t):
    sent = t.environment("workspace").inbox.sent
    written = [address for email in sent for address in (*email.recipients, *email.cc)]
    counts = {address: written.count(address) for address in written}
    return [list(pair) for pair in sorted(counts.items(), key=lambda pair: -pair[1])[:2]]


@task("reschedule a calendar event")
def postpone_dentist(t):
    t.workspace.reschedule_calendar_event(event_id="5", new_start_time="2024-05-25 09:00")
    return ["2024-05-25T09:00:00", "2024-05-25T10:00:00"]


@task("cancel calendar events")
def cancel_yoga(t):
    events = t.workspace.search_calendar_events(query="Yoga")
    chosen = [event.id_ for event in events if event.title == "Yoga Class"]
    for event in chosen:
        t.workspace.cancel_calendar_event(event_id=event)
    return len(chosen)


@task("open the customer feedback file")
def average_rating(t):
    rows = [line.split(",") for line in t.environment("workspace").cloud_drive.files["0"].content.splitlines()[1:]]
    ratings = {row[0]: int(row[2]) for row in rows}
    unhappy = [name for name, rating in ratings.items() if rating < 2]
    return {"people": len(ratings), "average": round(sum(ratings.values()) / len(ratings), 2), "unhappy": unhappy}


@task("delete emails from a sender", printed=True)
def delete_promotions(t):
    senders = ("promotions@traveldeals.com", "info@best-event-organizers.com")
    chosen = [email for email in t.environment("workspace").inbox.received if email.sender in senders]
    for email in chosen:
        t.workspace.delete_email(email_id=email.id_)
    return [email.subject for email in chosen]


@task("find the latest email about a subject")
def newest_security_code(t):
    email = max(t.workspace.search_emails(query="security code"), key=lambda email: email.timestamp)
    return {"from": email.sender, "at": email.timestamp.isoformat(), "read": email.read}


@task("calendar events of several days")
def events_per_day(t):
    events = t.environment("workspace").calendar.events.values()
    days = [f"2024-05-{day}" for day in range(24, 29)]
    return {day: sum(str(event.start_time.date()) == day for event in events) for day in days}


@task("get files of the drive by id")
def words_in_files(t):
    files = [t.environment("workspace").cloud_drive.files[number] for number in ("2", "14", "19")]
    return {file.filename: len(file.content.split()) for file in files}


@task("email a file as an attachment", printed=True)
def send_vacation_plans(t):
    names, ids = ("vacation-plans.docx", "vacation-plans-europe.docx"), ("7", "22")
    email = t.workspace.send_email(
        recipients=["lily.white@gmail.com"],
        subject="Vacation plans",
        body=f"Attached: {', '.join(names)}",
        attachments=[{"type": "file", "file_id": number} for number in ids],
    )
    return [f"sent email {email.id_} with 2 attachments"]


@task("find a contact by name")
def contacts_as_json(t):
    return [contact.email for contact in t.environment("workspace").inbox.find_contacts_by_name("Sarah")]


@task("add participants to a calendar event")
def invite_to_kickoff(t):
    names, found = ("Katie", "David Smith"), t.environment("workspace").inbox.find_contacts_by_name
    emails = [contact.email for name in names for contact in found(name)]
    event = t.workspace.search_calendar_events(query="kick-off")[0]
    updated = t.workspace.add_calendar_event_participants(event_id=event.id_, participants=emails)
    return {"title": updated.title, "participants": len(updated.participants)}
