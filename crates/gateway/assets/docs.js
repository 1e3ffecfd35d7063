// Shows the API document. Everything comes from it as text; nothing is ever parsed as HTML.

const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// How deep shapes are written out; deeper ones keep their names, so that a shape within itself ends.
const DEPTH = 4;

const named = (api, ref) => ref.slice(2).split("/").reduce((node, key) => node?.[key], api);

// A short text for a schema: `{ "id": uuid, "seats": [ … ] }`.
const shape = (api, schema, indent = "", depth = DEPTH) => {
  if (schema === true || schema === undefined) return "anything";
  if (schema.$ref) {
    return depth > 0 ? shape(api, named(api, schema.$ref), indent, depth - 1) : schema.$ref.split("/").pop();
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const either = schema.oneOf ?? schema.anyOf;
  if (either) return either.map((one) => shape(api, one, indent, depth)).join(" | ");
  const types = [schema.type ?? "anything"].flat();
  const texts = types.map((type) => {
    if (type === "array") return `[ ${shape(api, schema.items, indent, depth)} ]`;
    if (type !== "object") return type === "null" ? type : (schema.format ?? type);
    const inner = `${indent}  `;
    const required = new Set(schema.required ?? []);
    const lines = Object.entries(schema.properties ?? {}).map(
      ([key, value]) => `${inner}"${key}"${required.has(key) ? "" : "?"}: ${shape(api, value, inner, depth)}`,
    );
    return lines.length ? `{\n${lines.join(",\n")}\n${indent}}` : "{ … }";
  });
  return texts.join(" | ");
};

// Written for readers of Markdown; here its signs would only be seen.
const plain = (text) => text.replace(/[*`]/g, "");

const block = (title, text) => [make("h4", {}, title), make("pre", { tabindex: "0" }, text)];

const parameters = (api, list) => {
  const rows = list.map((one) =>
    make("tr", {},
      make("td", {}, make("code", {}, one.name)),
      make("td", {}, one.in + (one.required ? "" : ", optional")),
      make("td", {}, shape(api, one.schema)),
      make("td", {}, plain(one.description ?? ""))));
  const heads = ["Name", "Where", "What", "Why"].map((head) => make("th", { scope: "col" }, head));
  return make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
};

const operation = (api, path, method, about) => {
  const body = make("div");
  if (about.description) body.append(make("p", {}, about.description));
  if (about.parameters?.length) body.append(make("h4", {}, "Parameters"), parameters(api, about.parameters));
  const request = about.requestBody?.content?.["application/json"]?.schema;
  if (request) body.append(...block("Body", shape(api, request)));
  const refusals = make("ul");
  for (const [status, answer] of Object.entries(about.responses)) {
    const text = `${status} ${answer.description}`;
    const schema = answer.content?.["application/json"]?.schema;
    if (status >= 400) refusals.append(make("li", {}, plain(text)));
    else if (schema) body.append(...block(text, shape(api, schema)));
    else if (status !== "default") body.append(make("p", {}, text));
  }
  if (refusals.children.length) body.append(make("h4", {}, "Refusals"), refusals);
  const [takes] = about.security;
  const who = !takes ? "anybody" : takes.bearer.includes("admin") ? "operators" : "signed in";
  const details = make("details", { id: about.operationId },
    make("summary", {},
      make("span", { class: "method" }, method.toUpperCase()), " ", make("code", {}, path), " ",
      about.summary ?? "", " ", make("span", { class: "who" }, `(${who})`)),
    body);
  details.dataset.words = `${method} ${path} ${about.summary} ${about.tags.join(" ")} ${who}`.toLowerCase();
  return details;
};

const show = (api) => {
  const sections = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, about] of Object.entries(methods)) {
      const tag = about.tags[0];
      if (!sections.has(tag)) sections.set(tag, make("section", {}, make("h2", {}, tag)));
      sections.get(tag).append(operation(api, path, method, about));
    }
  }
  const said = (api.info.description ?? "").split("\n\n").map((text) => make("p", {}, plain(text)));
  document.getElementById("about").after(...said);
  const main = document.getElementById("operations");
  main.replaceChildren(...sections.values());
  const all = [...main.querySelectorAll("details")];
  const count = document.getElementById("count");
  const filter = document.getElementById("filter");
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const details of all) details.hidden = !words.every((word) => details.dataset.words.includes(word));
    for (const section of sections.values()) {
      section.hidden = [...section.querySelectorAll("details")].every((details) => details.hidden);
    }
    const shown = all.filter((details) => !details.hidden).length;
    count.textContent = `${shown} of ${all.length} operations, version ${api.info.version}`;
  };
  filter.addEventListener("input", apply);
  apply();
  document.getElementById(location.hash.slice(1))?.setAttribute("open", "");
};

try {
  const answer = await fetch("/api/openapi.json");
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  show(await answer.json());
} catch (error) {
  document.getElementById("operations").replaceChildren(
    make("p", { role: "alert" }, `The document could not be read: ${error.message}. Reload the page to try again.`));
}
