const text = await banking.read_file({ file_path: "address-change.txt" });
const lines = text.split("\n").map((line) => line.trim());
const start = lines.indexOf("USA") - 2;
const info = await banking.update_user_info({ street: lines[start], city: lines[start + 1].split(",")[0] });
return info;
