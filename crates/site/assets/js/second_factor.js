// Enabling and disabling the second factor.
import { call } from "./api.js";
import { onSubmit, tell, tellNext } from "./forms.js";
import { say } from "./texts.js";

const section = document.querySelector("[data-second]");

function showCodes(codes, afterwards) {
  for (const form of section.querySelectorAll("form")) form.hidden = true;
  const items = codes.map((code) => Object.assign(document.createElement("li"), { textContent: code }));
  section.querySelector("[data-codes]").replaceChildren(...items);
  const panel = section.querySelector("[data-recovery]");
  panel.hidden = false;
  panel.querySelector("h3").focus();
  panel.querySelector("[data-copy]").addEventListener("click", async () => {
    await navigator.clipboard.writeText(codes.join("\n"));
    tell(say("copied"));
  });
  panel.querySelector("[data-kept]").addEventListener("click", () => {
    tellNext(afterwards);
    location.reload();
  });
}

/** Shows the QR code. It is part of the response, so the secret is in no URL and no cache. */
function showQr(place, drawn) {
  place.hidden = !drawn;
  if (!drawn) return;
  const picture = new DOMParser().parseFromString(drawn, "image/svg+xml").documentElement;
  place.replaceChildren(document.importNode(picture, true));
}

export function secondFactor() {
  onSubmit("enrol", async ({ password = null }, _, form) => {
    const { body } = await call("POST", "/api/auth/second-factor", { password });
    const confirm = section.querySelector('[data-form="enrol-confirm"]');
    showQr(confirm.querySelector("[data-qr]"), body.qr);
    confirm.querySelector("[data-otpauth]").href = body.uri;
    confirm.querySelector("[data-secret]").textContent = body.secret.match(/.{1,4}/g).join(" ");
    form.hidden = true;
    confirm.hidden = false;
    confirm.querySelector("[data-scan]").focus();
  });

  onSubmit("enrol-confirm", async ({ code }) => {
    const { body } = await call("POST", "/api/auth/second-factor/confirm", { code });
    showCodes(body.recoveryCodes, "second_factor_on");
  });

  onSubmit("renew", async ({ code }) => {
    const { body } = await call("POST", "/api/auth/second-factor/recovery-codes", { code: code.trim() });
    showCodes(body.recoveryCodes, "saved");
  });

  onSubmit("second-off", async ({ password = null, code }) => {
    await call("DELETE", "/api/auth/second-factor", { password, code: code.trim() });
    tellNext("second_factor_off");
    location.reload();
  });
}
