// A location that a visitor shares: an address of OpenStreetMap, which is a text that any desk can open, without an account and without
// asking a third party for anything from the visitor's page.

const MAP = "https://www.openstreetmap.org/";
const LOCATION = /^https:\/\/www\.openstreetmap\.org\/\?mlat=(-?[\d.]+)&mlon=(-?[\d.]+)(?:#\S*)?$/;

const TIME_MAX_MS = 15_000;

/** Five decimals are about one metre. */
const locationText = (latitude, longitude) => {
  const [lat, lon] = [latitude.toFixed(5), longitude.toFixed(5)];
  return `${MAP}?mlat=${lat}&mlon=${lon}#map=17/${lat}/${lon}`;
};

/** `{lat, lon}` when the text is a location that was shared, else null. */
export function locationIn(text) {
  const found = LOCATION.exec(text || "");
  return found && { lat: Number(found[1]), lon: Number(found[2]) };
}

/** Where the visitor is, as a text to send; null when the browser does not say. */
export async function ownLocation() {
  if (!navigator.geolocation || !isSecureContext) return null;
  const options = { enableHighAccuracy: true, timeout: TIME_MAX_MS, maximumAge: 60_000 };
  const found = await new Promise((resolve) => {
    navigator.geolocation.getCurrentPosition((place) => resolve(place.coords), () => resolve(null), options);
  });
  return found && locationText(found.latitude, found.longitude);
}
