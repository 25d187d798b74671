-- A message into an open ticket; ten thousand tickets in turn.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local sent = 0

function request()
  sent = sent + 1
  return post("/messages", '{"ticketId":' .. turn(subjects.tickets, sent) .. ',"type":"text","body":"' .. text .. '"}')
end
