/* Browsers refuse workers in pages that are opened from the disk. There, and only there, a worker is
   a hidden frame that runs the same script; messages go to and fro as they would. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source === inside)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
      this.loaded = new Promise((resolve) => {
        this.frame.onload = resolve;
        inside.document.open();
        inside.document.write(
          "<script>postMessage = (data) => parent.dispatchEvent(" +
            'new MessageEvent("message", {data, source: window}));</script>' +
            `<script src="${new URL(url, location)}"></script>`,
        );
        inside.document.close();
      });
    }
    postMessage(data) {
      this.loaded.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })),
      );
    }
    terminate() {
      this.frame.remove();
    }
  };
}
