// The rules of n8n for community nodes.

import parser from "@typescript-eslint/parser";
import n8n from "eslint-plugin-n8n-nodes-base";

const of = (name) => n8n.configs[name].rules;
const shared = { plugins: { "n8n-nodes-base": n8n } };

export default [
  { ignores: ["dist", "node_modules"] },
  { ...shared, files: ["package.json"], languageOptions: { parser, parserOptions: { extraFileExtensions: [".json"] } }, 
    // This repository is under both licences, and its authors are in its history.
    rules: { ...of("community"), "n8n-nodes-base/community-package-json-license-not-default": "off", "n8n-nodes-base/community-package-json-author-missing": "off" },
  },
  { ...shared, files: ["credentials/**/*.ts"], languageOptions: { parser }, 
    // It is a URL, not a name of a page of n8n.
    rules: { ...of("credentials"), "n8n-nodes-base/cred-class-field-documentation-url-miscased": "off" },
  },
  { ...shared, files: ["nodes/**/*.ts"], languageOptions: { parser }, rules: of("nodes") },
];
