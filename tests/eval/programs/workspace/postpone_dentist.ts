const dentist = (await workspace.search_calendar_events({ query: "Dentist" }))[0];
const day = String(Number(dentist.start_time.slice(8, 10)) + 7);
const newStart = dentist.start_time.slice(0, 8) + day + " " + dentist.start_time.slice(11, 16);
const moved = await workspace.reschedule_calendar_event({ event_id: dentist.id_, new_start_time: newStart });
return [moved.start_time, moved.end_time];
