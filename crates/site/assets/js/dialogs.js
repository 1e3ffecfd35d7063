// Confirmation dialogs: `<dialog data-dialog>` with one button that says yes and one that closes it.

/** Shows a dialog of this page and resolves to whether it was confirmed. Escape and the other button are a no. */
export function confirmed(name) {
  const dialog = document.querySelector(`[data-dialog="${name}"]`);
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes"), { once: true }));
}
