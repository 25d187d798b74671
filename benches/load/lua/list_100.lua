-- The first hundred open tickets.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local asked = get("/tickets?status=open&perPage=100")

function request()
  return asked
end
