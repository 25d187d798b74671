/** The widget of a page, as its script gives it: `window.HotlineWebchat`. Each method waits until the widget is on the page. */
export interface HotlineWebchat {
  /** Opens the chat. */
  open(): Promise<void>;
  /** Closes the chat. */
  close(): Promise<void>;
  /**
   * Says who the visitor is.
   *
   * @param identity a JSON Web Token that your server has signed with the channel's identity secret
   * @returns whether it is accepted; `undefined` if this page may not show the widget, for the console's reason
   */
  identify(identity: string): Promise<boolean | undefined>;
  /** Deletes the visitor's conversation from this browser, in every tab. Call it when your page logs the visitor out. */
  logout(): Promise<void>;
}

/** The attributes of the `<script>` line, as its `dataset` has them: `data-identity` is `identity`. */
export interface HotlineWebchatAttributes {
  /** The visitor's identity, signed by your server. */
  identity?: string;
  /** Present if the chat opens with the page. */
  open?: "";
  /** A selector of the element in which the widget is placed. */
  in?: string;
}

declare global {
  /** The widget, once its script has run: `window` then receives the event `hotline-webchat`. */
  // `var`, so that it is a property of `window` too.
  var HotlineWebchat: HotlineWebchat | undefined;

  interface WindowEventMap {
    /** `window.HotlineWebchat` exists from now on. */
    "hotline-webchat": Event;
  }

  interface HTMLElementTagNameMap {
    /** The widget's element; what is in it is not for pages. */
    "hotline-webchat": HTMLElement;
  }
}
