-- The first twenty open tickets: what a screen shows.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local asked = get("/tickets?status=open&perPage=20")

function request()
  return asked
end
