-- Of twenty requests ten send, four read a ticket, three list the first twenty, and three change a ticket's state.
--
-- The tickets whose state changes are not written to. They go round: each is given to an agent, then each is closed
-- with its wrap-up, then each is reopened. One round is thousands of requests long, so a ticket's last change was
-- answered before its next is asked for; should it not have been, that is an error and the run fails.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local asked, sent, read, changed = 0, 0, 0, 0
local list = get("/tickets?status=open&perPage=20")
local wrapup = '{"wrapupTypeId":' .. subjects.wrapup_type .. ',"wrapupNote":"Sent a new one, free of charge."}'
local transfer = '{"userId":' .. subjects.user .. '}'

local function send()
  sent = sent + 1
  return post("/messages", '{"ticketId":' .. turn(subjects.tickets, sent) .. ',"type":"text","body":"' .. text .. '"}')
end

local function show()
  read = read + 1
  return get("/tickets/" .. turn(subjects.tickets, read * 7))
end

local function change()
  local ticket = "/tickets/" .. turn(subjects.changing, changed)
  local round = math.floor(changed / #subjects.changing) % 3
  changed = changed + 1
  if round == 0 then
    return post(ticket .. "/transfer", transfer)
  elseif round == 1 then
    return post(ticket .. "/close", wrapup)
  else
    return post(ticket .. "/reopen", "{}")
  end
end

local pattern = {}
for slot in ("srslscsrslscsrslscsr"):gmatch(".") do
  pattern[#pattern + 1] = slot
end

function request()
  asked = asked + 1
  local slot = turn(pattern, asked)
  if slot == "s" then
    return send()
  elseif slot == "r" then
    return show()
  elseif slot == "l" then
    return list
  else
    return change()
  end
end
