-- A ticket for a contact that has none open; each contact once.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local opened = 0

function request()
  opened = opened + 1
  local contact = subjects.contacts[opened]
  if not contact then
    return finish()
  end
  return post("/tickets", '{"channelId":' .. subjects.channel .. ',"contactId":' .. contact .. '}')
end
