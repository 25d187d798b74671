// In which language the pages speak.

import { language, speak, type Language } from "../core/text";

const NAMES: Record<Language, string> = { en: "English", pt: "Português", es: "Español" };

export function Languages() {
  return (
    <div class="languages" role="group" aria-label="Language · Idioma">
      {(Object.keys(NAMES) as Language[]).map((name) => (
        <button key={name} type="button" class="bare" lang={name} aria-pressed={language.value === name} onClick={() => speak(name)}>
          {NAMES[name]}
        </button>
      ))}
    </div>
  );
}
