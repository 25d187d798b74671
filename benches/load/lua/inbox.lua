-- The hundred open tickets with the latest activity.

dofile(os.getenv("HOTLINE_LOAD_SCRIPTS") .. "/drive.lua")

local asked = get("/tickets?status=open&sort=activity&perPage=100")

function request()
  return asked
end
