-- A message into an open ticket; ten thousand tickets in turn.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local sent = 0

function request()
  sent = sent + 1
  return post("/messages", '{"ticketId":' .. ticket(sent) .. ',"type":"text","body":"' .. text .. '"}')
end
