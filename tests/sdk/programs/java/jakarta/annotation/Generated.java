package jakarta.annotation;

/** Stands in for the one of jakarta.annotation-api, which a build tool would fetch; it only says something to readers. */
public @interface Generated {
  String[] value();

  String date() default "";

  String comments() default "";
}
