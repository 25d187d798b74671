-- The same as send.lua, each with an idempotency key of its own.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local sent = 0

function request()
  sent = sent + 1
  local body = '{"ticketId":' .. turn(subjects.tickets, sent) .. ',"type":"text","body":"' .. text .. '"}'
  return post("/messages", body, "Idempotency-Key: load-" .. run .. "-" .. sent .. "\r\n")
end
